"""Causal language models, their tokenizers and the sampler."""
