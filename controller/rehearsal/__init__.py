"""Rehearsals (répétitions): a whole table with twins for wheel, players and staff. None can sign for a real one."""
