// The search of one box: is there an answer in it that is cheaper than `limit`? exact.hpp says how.
//
// Its parts: the position (position.hpp) is the box with its closest point and its tests, the
// brancher (branch.hpp) says where to split, the price (price.hpp) bounds boxes that plain search
// cannot finish, the work (work.hpp) says when to stop, and the loop is here. Which boxes are
// searched, and below which limits, is the frontier's to say (row.hpp).
#pragma once

#include <memory>
#include <optional>

#include "treefocus/branch.hpp"
#include "treefocus/exact.hpp"
#include "treefocus/position.hpp"
#include "treefocus/price.hpp"
#include "treefocus/proof.hpp"
#include "treefocus/work.hpp"

namespace treefocus {

// A side of a cut, and the sides taken before it: together, a box.
struct Step {
    Cut cut;
    bool is_far = false;
    std::shared_ptr<const Step> before;
};

// A part of the space in which answers to a goal may be.
struct Node {
    std::size_t goal = 0;
    double bound = 0.0;   // no answer in it is cheaper, but for boxes that no split decides
    double proven = 0.0;  // no answer in it is cheaper, nor an undecided box
    bool is_undecided = false;
    std::shared_ptr<const Step> path;
    std::shared_ptr<const Price::State> shares;  // of this box or of one around it
    std::int64_t number = 0;                     // in the order in which nodes were made
};

class Search {
public:
    Search(Position& position, Work& work, bool can_price, std::int64_t patience);

    // Looks for answers cheaper than limit in a box, with so many boxes; true if the search came to
    // its end: then no answer in the box is cheaper than limit().
    bool run(const Goal& goal, double limit, const Box& box, std::int64_t n_boxes);

    // The same with plain boxes alone, as many as it takes, and every step is written down.
    bool record(const Goal& goal, double limit, ProofLog& log);

    // The same for a node, with prices. If it does not come to its end, the node is split in two;
    // `near` is then its other side. The node's bound is raised to what was proven.
    enum class Look { closed, split, stopped };
    Look look(const Goal& goal, double limit, Node& node, Node& near, bool can_keep);

    double limit() const { return at_.limit; }
    bool has_answer() const { return !best_.empty(); }
    const std::vector<double>& best() const { return best_; }
    // What the cheapest box costs that could not be decided, infinity if there was none.
    double unresolved() const { return unresolved_; }

private:
    // Brings the position into a box, narrowed by the budget and the rules; false if it is done.
    bool start(const Goal& goal, double limit, const Box& box, const Step* path);
    void take(const Step* path);
    void count_box_steps(bool is_open);

    // Bounds the current box; true if it is done (nothing cheaper than limit in it, or its best is
    // taken).
    bool close_box();
    bool close(ProofStep reason);
    void weigh();

    // Cells that the budget does not reach leave the box. False if the box is done.
    bool spend();
    std::int32_t last_in_reach(std::int32_t f, std::int32_t code, std::int32_t end) const;
    void spend_on_set(std::int32_t f, std::int32_t at);

    // What the rules leave out leaves the box. False if the box is done.
    bool obey();

    // A point that was rounded, or is dearer than the bound, is found anew where the box has lost
    // what it was before, or could have a better bound. False if the box is done.
    bool keep_point();

    // A box that cannot be split: a cell without an answer is done; of anything else it is only
    // known what it costs.
    void give_up(const Cut& cut);

    // Plain depth first until so many boxes have been opened; false if cut off. The far side is a
    // call, the near side goes on in this one, so that the stack is only as deep as steps were
    // taken.
    bool plain(std::int64_t last_box);
    bool enter(const Cut& cut, bool is_far);
    void leave(const Cut& cut, bool is_far, const Position::Mark& m);

    // A priced bound of the box as it is now, from a node's shares or from none.
    double price_box(const Price::State* around, int sweeps);
    double improve_price(int sweeps);
    void install_price();
    // What the price shows to be without an answer leaves the box and the crop. False if the box is
    // done.
    bool leave_out();
    void leave_cells(std::int32_t f, const Box& box);
    double left(double limit) const;
    double told(double bound);

    // Plain boxes before a box gets a priced bound.
    static constexpr std::int64_t kRootBoxes = 300;
    static constexpr std::int64_t kBoxes = 30;
    static constexpr std::int64_t kAllBoxes = std::numeric_limits<std::int64_t>::max() / 4;
    static constexpr int kRootSweeps = 30, kFirstSweeps = 1, kSweeps = 2;
    // What is done in steps, by its size: see Work.
    static constexpr std::int64_t kBox = 300, kBoxFeature = 10, kBoxTree = 3, kSlotsPerStep = 2;
    static constexpr std::int64_t kLook = 10, kCropLook = 8, kPriceLook = 3;

    std::int64_t patience_;
    Position& at_;
    Work& work_;
    ProofLog* log_ = nullptr;  // what is done is written down, if there is one
    // In the log, what the bound of the box rests on; -1: nothing but the box.
    std::int32_t weighed_ = -1;
    Brancher brancher_;
    std::optional<Price> price_;
    Ranking priced_;
    std::optional<BoxCost::Minorant> minorant_;  // that the last price was for
    std::vector<std::uint8_t> is_kept_;
    std::vector<double> best_;
    double unresolved_ = kInfinity;
    std::int64_t box_steps_ = 0;  // of every box, in the present crop
};

}  // namespace treefocus
