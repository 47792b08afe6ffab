// Small linear programs: min cost x subject to matrix x <= right, 0 <= x <= upper, with costs that
// are not negative.
//
// The dual simplex method with bounds: all x at 0 cost least, and as long as a row is broken, the
// variable that mends it at the smallest extra cost enters. With a few rows, as here, it takes a
// few steps. Rounding can spoil any of it, so that whoever calls checks what comes back: prices
// give a bound and a proof of impossibility whatever they are.
#pragma once

#include <cstdint>
#include <vector>

namespace treefocus {

struct Program {
    std::size_t n_rows = 0, n_columns = 0;
    std::vector<double> matrix;       // (n_rows, n_columns)
    std::vector<double> right;        // (n_rows,)
    std::vector<double> cost, upper;  // (n_columns,)
};

enum class Verdict { solved, impossible, open };

struct Solution {
    Verdict verdict = Verdict::open;
    std::vector<double> values;  // (n_columns,) where solved
    // (n_rows,) of the rows; where impossible, weights whose sum of rows no x meets
    std::vector<double> prices;
    std::int64_t steps = 0;  // entries that were looked at
};

Solution solve(const Program& program);

}  // namespace treefocus
