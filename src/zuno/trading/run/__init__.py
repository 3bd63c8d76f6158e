"""The order of a cycle, on LangGraph."""
