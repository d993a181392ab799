"""Classification when almost nothing is labelled."""
