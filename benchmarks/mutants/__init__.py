"""The measure of "why, and which line": mutants of others' ports, frozen, and what is said of them.

kinds      how a port is changed: one table          drawing    evenly over the kinds, by a seed
frozen     a folder for each mutant                  judging    asks `align`, and `fix`
reading    a finding as structure                    scoring    module, line, cause, repair: the table
"""
