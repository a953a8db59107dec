"""The spellings of yes and no that ids are looked up for."""

FORMS = {"yes": ("yes", "Yes", " yes", " Yes"), "no": ("no", "No", " no", " No")}
"""The eight forms of the paper's Listing 1."""

CAPITALS = {"yes": ("YES", " YES"), "no": ("NO", " NO")}
"""Further forms that vocabularies have pieces for; shown beside the eight and read by no legacy readout."""
