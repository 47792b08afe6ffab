"""What the tests share: forests, questions, judges, servers and pages."""
