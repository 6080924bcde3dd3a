"""The tables behind report and figures: a results folder as tidy data frames; no torch.

Statistics come from `rail.stats`; here they are only asked for and laid out. A column `x` with an
interval has companions `x_low` and `x_high`.
"""
