"""The guide's name; `refer` says ours."""

from pipeline.guide_names import refer

refer(__file__)
