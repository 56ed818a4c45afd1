"""How a model is found: one file a stage, in the order in which data flow."""
