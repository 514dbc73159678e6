"""Which parallel plan: all feasible plans by closed forms, the best by runs."""
