"""Every topic name of a table, in one place: ``casino/v1/<site>/table/<table>/…``.

``up`` is written by the table, ``down`` is read by it, and a post has one topic in each direction. Site and table are
one topic level each, of letters, digits, dot, dash and underscore: a name that holds a wildcard or a slash would listen
to, or speak for, another table.
"""

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_POST = re.compile(r"[1-9][0-9]{0,2}")

POST_MAXIMUM = 999
"""Posts are numbered from 1 to this."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one table. Raises ValueError (E-TOPIC-NAME) when a name cannot be a topic level."""

    site: str
    table: str
    root: str = field(init=False)
    _in_prefix: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for what, name in (("site", self.site), ("table", self.table)):
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"E-TOPIC-NAME {what} {name!r}: a topic level of 1 to 64 letters, digits, dots, dashes and "
                    "underscores, beginning with a letter or a digit"
                )
        object.__setattr__(self, "root", f"casino/v1/{self.site}/table/{self.table}")
        object.__setattr__(self, "_in_prefix", f"{self.root}/post/")

    @property
    def event(self) -> str:
        """Certified entries, the exact bytes of each leaf."""
        return f"{self.root}/up/event"

    @property
    def checkpoint(self) -> str:
        """The newest signed checkpoint, retained."""
        return f"{self.root}/up/checkpoint"

    @property
    def state(self) -> str:
        """What the table is doing, retained; also its will."""
        return f"{self.root}/up/state"

    @property
    def description(self) -> str:
        """What the table is: version, keys, schemas, rules; retained."""
        return f"{self.root}/up/description"

    @property
    def statement(self) -> str:
        """The séance statement that persons are asked to sign."""
        return f"{self.root}/up/statement"

    @property
    def reply(self) -> str:
        """Answers to commands, with their correlation data."""
        return f"{self.root}/up/reply"

    @property
    def display(self) -> str:
        """The public board, retained."""
        return f"{self.root}/up/display"

    @property
    def ack(self) -> str:
        """The mirror's acknowledgement: a cosigned checkpoint, retained."""
        return f"{self.root}/down/ack"

    @property
    def replay(self) -> str:
        """The mirror asks for entries again."""
        return f"{self.root}/down/replay"

    @property
    def recall(self) -> str:
        """The table asks the mirror for entries again, because its own disk lost them."""
        return f"{self.root}/up/recall"

    @property
    def entry(self) -> str:
        """An entry that the table asked the mirror for, the exact bytes of its leaf."""
        return f"{self.root}/down/entry"

    def witness(self, name: str) -> str:
        """Where the witness ``name`` (one topic level) keeps its newest cosigned checkpoint, retained."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"E-TOPIC-NAME witness {name!r}: it must be one topic level, like those of site and table")
        return f"{self.root}/down/witness/{name}"

    @property
    def command(self) -> str:
        """Signed orders."""
        return f"{self.root}/down/command"

    @property
    def posts_in(self) -> str:
        """The filter that hears every post."""
        return f"{self._in_prefix}+/in"

    def post_in(self, post: int) -> str:
        """Where post ``post`` writes."""
        return f"{self._in_prefix}{_checked(post)}/in"

    def post_out(self, post: int) -> str:
        """Where post ``post`` reads its answers."""
        return f"{self._in_prefix}{_checked(post)}/out"

    def post_of(self, topic: str) -> int | None:
        """The post that writes on ``topic``, or None when no post of this table does."""
        if not (topic.startswith(self._in_prefix) and topic.endswith("/in")):
            return None
        number = topic[len(self._in_prefix) : -len("/in")]
        return int(number) if _POST.fullmatch(number) else None


def _checked(post: int) -> int:
    if not 1 <= post <= POST_MAXIMUM:
        raise ValueError(f"post {post}: posts are numbered from 1 to {POST_MAXIMUM}")
    return post
