// The tableau of a dual simplex method with bounded variables.
//
// Every row reads: basic variable + sum of table entries * others = constant, and beta_ is what the
// basic variables come to with the others at 0 or at their upper ends. Costs are not negative, so
// that the start, everything at 0, is optimal but for the rows that it breaks. A pivot mends the
// worst of them and keeps the reduced costs right; once no row is broken, the point is optimal.
#include "treefocus/program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace treefocus {

namespace {

constexpr double kPivot = 1e-11;  // smaller entries are taken for zero
// How far outside its bounds, relatively, a variable counts as broken.
constexpr double kBroken = 1e-12;
constexpr int kStepsPerRow = 40;  // more than this is cycling

// Columns 0..n_columns-1 are the program's, then one slack a row.
class Simplex {
public:
    explicit Simplex(const Program& program)
        : n_(program.n_rows),
          m_(program.n_columns + program.n_rows),
          table_(n_ * m_, 0.0),
          reduced_(m_, 0.0),
          upper_(m_, std::numeric_limits<double>::infinity()),
          at_upper_(m_, 0),
          basis_(n_),
          beta_(program.right) {
        for (std::size_t i = 0; i < n_; ++i) {
            for (std::size_t j = 0; j < program.n_columns; ++j)
                at(i, j) = program.matrix[i * program.n_columns + j];
            at(i, program.n_columns + i) = 1.0;
            basis_[i] = program.n_columns + i;
        }
        std::copy(program.cost.begin(), program.cost.end(), reduced_.begin());
        std::copy(program.upper.begin(), program.upper.end(), upper_.begin());
    }

    // Two ends: no row is broken, and the basis is both feasible and optimal; or a broken row has
    // no variable left that could mend it, and then the row itself, a weighted sum of the given
    // ones, is the proof. Its weights stand in the columns of the slacks.
    Solution run(std::size_t n_columns) {
        Solution solution;
        const auto size = static_cast<std::int64_t>(n_ * m_);
        solution.steps = size;
        for (int step = 0; step < kStepsPerRow * static_cast<int>(n_ + 1); ++step) {
            const std::size_t row = most_broken();
            if (row == n_) {
                solution.verdict = Verdict::solved;
                break;
            }
            const bool is_low = beta_[row] < 0.0;
            const std::size_t column = entering(row, is_low);
            if (column == m_) {
                solution.verdict = Verdict::impossible;
                for (std::size_t j = 0; j < n_; ++j)
                    solution.prices.push_back(
                        std::max((is_low ? 1.0 : -1.0) * at(row, n_columns + j), 0.0));
                return solution;
            }
            pivot(row, column, is_low);
            solution.steps += size + static_cast<std::int64_t>(m_);
        }
        for (std::size_t j = 0; j < n_columns; ++j)
            solution.values.push_back(at_upper_[j] ? upper_[j] : 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            if (basis_[i] < n_columns)
                solution.values[basis_[i]] = std::clamp(beta_[i], 0.0, upper_[basis_[i]]);
        for (std::size_t i = 0; i < n_; ++i)
            // The price of a row is the reduced cost of its slack: what a unit of room would save.
            solution.prices.push_back(std::max(reduced_[n_columns + i], 0.0));
        return solution;
    }

private:
    double& at(std::size_t row, std::size_t column) { return table_[row * m_ + column]; }

    // Broken is below 0 or above the upper end; the worst row leaves, n_ stands for none.
    std::size_t most_broken() const {
        std::size_t worst = n_;
        double most = 0.0;
        for (std::size_t i = 0; i < n_; ++i) {
            const double over = std::max(-beta_[i], beta_[i] - upper_[basis_[i]]);
            if (over > kBroken * (1.0 + std::abs(beta_[i])) && over > most) most = over, worst = i;
        }
        return worst;
    }

    // Of the variables that move the row the right way, the one whose reduced cost is used up
    // first: any other would turn the sign of that one's. m_ stands for none.
    std::size_t entering(std::size_t row, bool is_low) {
        std::size_t best = m_;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < m_; ++j) {
            if (std::find(basis_.begin(), basis_.end(), j) != basis_.end() || upper_[j] == 0.0)
                continue;
            const double entry = at(row, j) * (is_low ? 1.0 : -1.0) * (at_upper_[j] ? -1.0 : 1.0);
            if (entry >= -kPivot) continue;
            const double ratio = std::abs(reduced_[j] / entry);
            if (ratio < least) least = ratio, best = j;
        }
        return best;
    }

    // The leaving variable goes to the end that it was beyond, the entering one takes what that
    // frees; then Gauss-Jordan elimination, costs included.
    void pivot(std::size_t row, std::size_t column, bool is_low) {
        const std::size_t leaving = basis_[row];
        const double step = (beta_[row] - (is_low ? 0.0 : upper_[leaving])) / at(row, column);
        const double entered = (at_upper_[column] ? upper_[column] : 0.0) + step;
        for (std::size_t i = 0; i < n_; ++i) beta_[i] -= at(i, column) * step;
        beta_[row] = entered;
        at_upper_[leaving] = !is_low;
        at_upper_[column] = 0;
        basis_[row] = column;
        const double inverse = 1.0 / at(row, column);
        for (std::size_t j = 0; j < m_; ++j) at(row, j) *= inverse;
        for (std::size_t i = 0; i < n_; ++i) {
            const double factor = at(i, column);
            if (i != row && factor != 0.0)
                for (std::size_t j = 0; j < m_; ++j) at(i, j) -= factor * at(row, j);
        }
        const double factor = reduced_[column];
        for (std::size_t j = 0; j < m_; ++j) reduced_[j] -= factor * at(row, j);
    }

    std::size_t n_, m_;
    std::vector<double> table_, reduced_, upper_;
    std::vector<std::uint8_t> at_upper_;
    std::vector<std::size_t> basis_;
    std::vector<double> beta_;
};

}  // namespace

Solution solve(const Program& program) {
    return Simplex(program).run(program.n_columns);
}

}  // namespace treefocus
