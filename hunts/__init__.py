"""Hunts: the real command against a source that misbehaves, a machine that dies, and a crowd of itself.

    python -m hunts faults [--seed N] [--rounds N] [--days N] [--only ROUND] [--no-daemon]
    python -m hunts kills  [--seed N] [--rounds N] [--days N] [--only ROUND] [--no-daemon]
    python -m hunts races  [--seed N] [--rounds N] [--days N] [--only ROUND] [--no-daemon]
    python -m hunts carbon [--seed N] [--rounds N] [--only ROUND]

Tests try what somebody thought of; a hunt tries what nobody did, at random moments. Every round fills an
empty home folder through child processes of the command, is hurt while it does, heals, and is then measured
(`yardstick.py`): every table of the lake is byte for byte what a home filled without trouble holds, no key
has two rows, nothing in the ledger runs or is due, and every trouble left a reason.

faults  every kind of fault the sandbox knows, one by one, then `--rounds` rounds with all of them at a fifth
        of the calls, then the daemon of `perennial up` with the same.
kills   `--rounds` times kill -9 of the whole process group at a random moment, up to three in a row, with
        and without the dead worker's lease running out in between; then a disk that fills up, a folder that
        turns read-only and a machine clock that jumps by a day, all of them in the middle of a run; then
        `perennial up` loses a run's worker, its daemon, or all its processes, and is started again.
races   `--rounds` crowds: backfills, forced or not, daily looks, healing and checks of overlapping days, all
        at once on one home, with maintenance in the middle (seconds in the place of its days) and readers
        throughout, who must never fail, see half a day, or be told otherwise of the past; one crowd more on
        Postgres, where there is one; then a second daemon beside `perennial up`, with clicks and lost days.
carbon  `--rounds` times each, on files and on Postgres where there is one: a crowd of uploads and healing all
        at once; a burst of uploads after which each year is summed once; files that come in while their year
        is summed, by somebody who is stopped meanwhile; and twice as many chains of one to four kill -9 at a
        moment, a commit, a claim or an end of any work, with and without the time that is waited for the
        dead. Readers see whole reports throughout. In the end a report is what somebody else calculates from
        the files (`sandbox/carbon/independent.py`), every table what a home has that got the same files one
        after another, every chain is at its end, and no year was summed without need.

Each round prints one line, the end one line of JSON; the exit code is 1 if anything was found. A round's luck
comes from the seed and the round's name alone: `--seed N --only NAME`, both printed, play it again. Moments
are real time, so a replay hits nearly, not exactly, the same instruction.
"""
