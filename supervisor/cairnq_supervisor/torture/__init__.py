"""`cairnq torture`: real fleets under a seeded schedule of faults, and the audit of what they left in the database."""
