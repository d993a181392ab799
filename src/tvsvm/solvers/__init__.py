"""Solvers: functions on arrays, each returning its certificate."""
