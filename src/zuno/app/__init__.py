"""USE CASES: the only room a front end may enter; one method for each thing a person can ask for."""
