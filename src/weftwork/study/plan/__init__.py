"""Which parallel plan: every plan that can be, by closed forms; the best by the flow engine."""
