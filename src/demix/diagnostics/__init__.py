"""How far latents can be trusted where no factors are known."""
