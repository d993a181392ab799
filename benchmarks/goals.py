"""Measured figures against their goals: a line each, and whether any is clearly missed."""

SLACK = 0.2  # a goal counts as clearly missed if the figure is off by more than this part of it


class Goals:
    """Prints figures as they come and remembers the goals that were clearly missed."""

    def __init__(self):
        self.missed = []

    def at_least(self, title, figure, goal, unit="x", *, note="", slack=SLACK):
        """A figure that should be high, such as how many times faster we are than a peer."""
        self._line(title, figure, f"at least {goal:g}{unit}", figure / goal, unit, note, slack)

    def at_most(self, title, figure, goal, unit=" s", *, note="", slack=SLACK):
        """A figure that should be low, such as seconds."""
        share = goal / figure if figure > 0 else 2.0
        self._line(title, figure, f"at most {goal:g}{unit}", share, unit, note, slack)

    @property
    def exit_code(self):
        """0 if no goal is clearly missed, 1 otherwise."""
        return 1 if self.missed else 0

    def summary(self):
        """One line for the end."""
        if not self.missed:
            return "No goal is missed by more than its slack."
        return "Clearly missed: " + "; ".join(self.missed)

    def _line(self, title, figure, goal, share, unit, note, slack):
        verdict = "met" if share >= 1 else "MISSED"
        text = f"{title:62s} {figure:10.3g}{unit:4s} goal {goal:16s} {verdict}"
        print(f"{text}  {note}".rstrip(), flush=True)
        if share < 1 - slack:
            self.missed.append(title)
