"""How a model is fitted: one file per stage, in the order in which data flow."""
