"""The fault suite: what demix does when it is killed, starved, cut off or lied to.

``make faults`` runs it in full, ``tests/faults`` in short.
"""
