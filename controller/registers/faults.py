"""What may go wrong with a register: a document is made from all the entries it is about, or not at all."""

from controller.certify.faults import CertifyFault


class RegisterFault(CertifyFault):
    """These entries do not make the document that was asked for."""
