"""The LP desk: Scout observes, Strategist proposes, Critic challenges, Arbiter breaks deadlocks."""
