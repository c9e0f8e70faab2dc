"""Converts weights between the frameworks: which tensor becomes which, and how, follows from a pair."""
