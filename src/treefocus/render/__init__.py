"""Showing an explanation: takes a finished one, computes nothing."""
