"""The paper again: its trials as rows, and its tables and figures drawn from the rows."""
