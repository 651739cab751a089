"""The rules under which a journal must go on: those of its open séance, and the number of its posts."""

from controller.options import Config
from games.roulette.coup import RouletteState


class RulesFault(Exception):
    """The configuration is not the one under which the journal must go on."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code} {detail}")
        self.code = code
        self.detail = detail


def refuse_other_rules(config: Config, state: RouletteState) -> None:
    """Raise RulesFault when the journal's séance or posts are not those of the configuration.

    Players staked under the rules that were certified at the opening; a round that was begun is ended by them.
    """
    posts, seance = len(state.posts.by_number), state.seance
    if posts != config.table.posts:
        detail = f"table.posts is {config.table.posts}; this journal keeps the meters of {posts}"
        raise RulesFault("E-POSTS-CHANGED", f"{detail}: a table with other posts begins a new epoch")
    if seance.open and seance.rules_sha256 != config.rules_sha256:
        detail = f"séance {seance.name} was opened under the rules {seance.rules_sha256[:16]}…"
        raise RulesFault("E-RULES-CHANGED", f"{detail}; the configuration now says {config.rules_sha256[:16]}…")
