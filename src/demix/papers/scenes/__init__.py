"""Scenes rendered from known latents: 3DIdent and its relatives, made rather than downloaded."""
