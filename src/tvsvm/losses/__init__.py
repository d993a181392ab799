"""Losses: what disagreeing with a label costs, and the steps the methods need of it."""
