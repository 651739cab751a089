"""Why an order is not taken: the code and a sentence in both languages. Nothing is certified for such an order."""

from collections.abc import Mapping

from controller.delivery.wire import WireError

ORDER_MESSAGE_BOUND = 2_048
"""Bytes of a command. Escaped in a leaf as evidence it stays far under the leaf's own bound."""


def oversized(payload: bytes) -> WireError:
    """The command is longer than any order is."""
    return WireError(
        "E-ORDER-OVERSIZED",
        f"L'ordre compte {len(payload)} octets ; {ORDER_MESSAGE_BOUND} sont permis.",
        f"The order has {len(payload)} bytes; {ORDER_MESSAGE_BOUND} are permitted.",
    )


def malformed(french: str, english: str) -> WireError:
    """What was signed cannot be understood as an order."""
    return WireError("E-ORDER-MALFORMED", french, english)


def refused(code: str) -> WireError:
    """A new one each time: an exception that is raised again keeps every place where it was raised."""
    french, english = _SENTENCES[code]
    return WireError(code, french, english)


_SENTENCES: Mapping[str, tuple[str, str]] = {
    "E-ORDER-UNSIGNED": ("L'ordre n'est pas une note signée.", "The order is not a signed note."),
    "E-ORDER-SIGNER": (
        "L'ordre n'est pas signé correctement, et seulement, par qui doit le signer et est enregistré à cette table.",
        "The order is not signed, rightly and by nobody else, by those who must and who are enrolled at this table.",
    ),
    "E-ORDER-REVOKED": ("La clé de cette personne est révoquée.", "The key of this person is revoked."),
    "E-ORDER-TABLE": ("L'ordre est destiné à une autre table.", "The order is meant for another table."),
    "E-ORDER-NONCE": (
        "Le défi signé n'est pas, ou n'est plus, valable ici. Regardez d'abord l'état de la table et son journal : "
        "l'ordre peut déjà être exécuté. S'il ne l'est pas, demandez un autre défi et signez de nouveau.",
        "The signed challenge is not, or no longer, good here. Look first at the table's state and its journal: "
        "the order may have been carried out already. If it was not, ask for another challenge and sign again.",
    ),
    "E-ORDER-OVERTAKEN": (
        "Un ordre que cette personne a signé après celui-ci est déjà passé. Regardez l'état de la table ; "
        "si celui-ci doit encore être donné, demandez un autre défi et signez de nouveau.",
        "An order that this person signed after this one has passed already. Look at the table's state; "
        "if this one is still to be given, ask for another challenge and sign again.",
    ),
    "E-ORDER-ROLE": (
        "La fonction de cette personne ne permet pas cet ordre.",
        "The role of this person does not permit this order.",
    ),
    "E-SECOND-DIRECTOR": (
        "Cet ordre demande les signatures de deux membres du comité de direction différents.",
        "This order needs the signatures of two different directors.",
    ),
    "E-STATEMENT-NOT-AWAITED": (
        "Aucun état de cette séance n'attend de certification : elle est ouverte, inconnue ou déjà certifiée, "
        "ou son état se prépare encore.",
        "No statement of this séance waits to be certified: it is open, unknown or certified already, "
        "or its statement is still being made.",
    ),
    "E-STATEMENT-SIGNATURE": (
        "Une ligne n'est pas la signature de cet état par une personne enregistrée à cette table.",
        "A line is not the signature of this statement by a person enrolled at this table.",
    ),
    "E-PERSON-ENROLLED": (
        "Ce badge est déjà enregistré ; révoquez-le d'abord.",
        "This badge is enrolled already; revoke it first.",
    ),
    "E-PERSON-UNKNOWN": (
        "Aucune personne de ce badge ne peut signer à cette table.",
        "No person of this badge may sign at this table.",
    ),
    "E-KEY-SHARED": (
        "Cette clé est, ou était, celle d'un autre badge.",
        "This key is, or was, that of another badge.",
    ),
    "E-ORDER-NO-EFFECT": (
        "L'ordre ne change rien ; rien n'a été certifié.",
        "The order changes nothing; nothing was certified.",
    ),
    "E-INBOX-FULL": (
        "La table est saturée et n'a pas pris l'ordre ; renvoyez-le tel quel.",
        "The table is overloaded and did not take the order; send it again unchanged.",
    ),
}
"""Why an order is not taken, in both languages."""
