"""The games: values and pure functions. Nothing here knows a clock, a socket, a pin or a file.

Each game is a value (its state) and two pure functions: ``decide`` answers an input with facts and requests,
``evolve`` folds a fact into the state. This layer imports the standard library only.
"""
