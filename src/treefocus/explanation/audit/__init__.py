"""From single answers to what a model demands of people: sums that merge, groups, disparities."""
