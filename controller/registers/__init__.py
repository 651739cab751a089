"""Documents that the law asks for, made from certified entries and from nothing else."""
