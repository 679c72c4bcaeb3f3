#!/usr/bin/env bash
# Is the market warehouse complete? One line a day for people, an exit code for machines.
#
# Runs `perennial check market` and appends one line to a log:
#     2026-11-17T20:00:02+0800 OK market: newest day 2026-11-17 is complete, 0 trading days behind; all sources answered
#     2026-11-17T20:00:02+0800 ALERT (exit 1) market: normalized_daily of 2026-11-17 is missing (0 of 5,404 rows)
# An ALERT goes to standard error too, so cron mails it; an OK prints nothing. The exit code is the
# check's: 0 complete, 1 not, 2 wrong usage; 124 if it took too long, 126 or 127 if it could not be run.
# If only the log cannot be written, the exit code is 1: a check without a log is no check.
#
# In the crontab of a host (arguments go to `perennial check market`):
#     45 18 * * 1-5  /opt/perennial/scripts/check_ingest.sh
#     45 18 * * 1-5  PERENNIAL_INGEST_EXEC="docker exec perennial" /opt/perennial/scripts/check_ingest.sh
#     45 18 * * 1-5  PERENNIAL_INGEST_EXEC="kubectl exec -n data deploy/perennial --" /opt/perennial/scripts/check_ingest.sh
#
# Settings (docs/settings.md): PERENNIAL_INGEST_EXEC what to put before the command, in a container or a
# pod (split at blanks); PERENNIAL_INGEST_LOG the log; PERENNIAL_INGEST_TIMEOUT_SECONDS how long to wait.
# Without a prefix, the command is searched on the PATH, then in .venv of the checkout this script is part of.
set -uo pipefail

checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
if [[ -f $checkout/workspace.yaml ]]; then state=$checkout/.perennial; else state=$PWD/.perennial; fi
log=${PERENNIAL_INGEST_LOG:-${PERENNIAL_HOME:-$state}/logs/check_ingest.log}
seconds=${PERENNIAL_INGEST_TIMEOUT_SECONDS:-300}

command=perennial
read -r -a prefix <<<"${PERENNIAL_INGEST_EXEC:-}"
if ((${#prefix[@]} == 0)) && ! command -v perennial >/dev/null && [[ -x $checkout/.venv/bin/perennial ]]; then
  command=$checkout/.venv/bin/perennial
fi

# The verdict is the last line of standard output, or of standard error if the check broke.
errors=$(mktemp)
trap 'rm -f -- "$errors"' EXIT
output=$(timeout --kill-after=10 "$seconds" ${prefix[@]+"${prefix[@]}"} "$command" check market "$@" 2>"$errors" </dev/null)
code=$?

verdict=$(printf '%s\n' "$output" | grep -v '^[[:space:]]*$' | tail -n 1)
[[ -n $verdict ]] || verdict=$(grep -v '^[[:space:]]*$' "$errors" | tail -n 1)
# The check begins with OK or ALERT; here the exit code decides.
verdict=${verdict#OK }
verdict=${verdict#ALERT }
verdict=$(printf '%s' "${verdict:0:500}" | tr -d '\000-\010\013-\037' | tr '\t' ' ')
case $code in
  124 | 137) verdict="no answer within $seconds s${verdict:+; last line: $verdict}" ;;
  126 | 127) verdict="could not run ${prefix[*]+${prefix[*]} }$command${verdict:+: $verdict}" ;;
  *) verdict=${verdict:-no output} ;;
esac

now=$(date +%Y-%m-%dT%H:%M:%S%z)
if ((code == 0)); then
  line="$now OK $verdict"
else
  line="$now ALERT (exit $code) $verdict"
  printf '%s\n' "$line" >&2
fi

# One short write to a file opened for appending: lines of two checks never mix.
if ! { mkdir -p -- "$(dirname -- "$log")" && printf '%s\n' "$line" >>"$log"; }; then
  printf '%s ALERT cannot write %s (PERENNIAL_INGEST_LOG)\n' "$now" "$log" >&2
  ((code == 0)) && code=1
fi
exit "$code"
