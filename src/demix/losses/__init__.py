"""Objectives: one streamed log-softmax and the losses made of it."""
