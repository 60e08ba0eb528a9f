"""The cost model: phases of a listen and a dequeue, fitted from traced cases, and a law of scaling.

S is what a listen does until it waits, W what each wake-up costs, U what leaving
the list costs, Q the dequeue.  A message with F false wake-ups costs
S + (1 + F) W + U + Q.
"""

from __future__ import annotations

import math
from typing import Any

KINDS = ("lock", "pin", "latch", "mutex", "channel")
# runs of the model: with ON_COMMIT a session executes all of its calls itself, so that its trace has all of their operations
MODEL = ("cases_on_commit", "px_on_commit")
# what the sources print, and what their own traces add up to
THEIRS = {"mutex": ("12 N M", "30 + 12 F"), "channel": ("6 N M", "9 + 6 F")}


def phases(cases: dict[str, float]) -> dict[str, dict[str, float]]:
    """S, W, U and Q of each kind, by the least squares of the four cases and of what case 2 had when it waited.

    case 1 = Q (it is found before the session waits), waiting = S, case 2 = S + W + U + Q, case 3 = S + 2 W + U + Q, case 4 = S + W + U.
    """
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        waiting, two, three, four = (cases.get(f"{case}_{kind}", 0.0) for case in ("waiting", "case2", "case3", "case4"))
        wake = three - two
        found[kind] = {"S": waiting, "W": wake, "U": four - waiting - wake, "Q": two - four}
    return found


def formula(phase: dict[str, float]) -> str:
    """Cost of a message with F false wake-ups."""
    base = phase["S"] + phase["W"] + phase["U"] + phase["Q"]
    return f"{base:g} + {phase['W']:g} F"


def predicted(phase: dict[str, float], false: float, waited: float = 1.0) -> float:
    """Operations of a message with this number of false wake-ups, if this share of the messages was waited for."""
    return phase["Q"] + waited * (phase["S"] + phase["W"] + phase["U"]) + false * phase["W"]


def scalability(points: dict[float, float]) -> dict[str, float]:
    """The universal scalability law X(N) = l N / (1 + s (N - 1) + k N (N - 1)), fitted by a search over s and k.

    For given s and k the best l follows from least squares.  The grid is refined around its best point.
    """
    xs = sorted(points)
    if len(xs) < 3:
        return {}

    def error(sigma: float, kappa: float) -> tuple[float, float]:
        shape = [x / (1 + sigma * (x - 1) + kappa * x * (x - 1)) for x in xs]
        scale = sum(a * points[x] for a, x in zip(shape, xs)) / sum(a * a for a in shape)
        return sum((scale * a / points[x] - 1) ** 2 for a, x in zip(shape, xs) if points[x]), scale

    best = (math.inf, 0.0, 0.0, 0.0)
    centre, width = (0.5, 0.02), (0.5, 0.02)
    for _ in range(12):
        for i in range(-10, 11):
            for j in range(-10, 11):
                sigma, kappa = max(0.0, centre[0] + width[0] * i / 10), max(0.0, centre[1] + width[1] * j / 10)
                wrong, scale = error(sigma, kappa)
                best = min(best, (wrong, sigma, kappa, scale))
        centre, width = (best[1], best[2]), (width[0] / 2, width[1] / 2)
    wrong, sigma, kappa, scale = best
    peak = math.sqrt((1 - sigma) / kappa) if kappa > 1e-9 and sigma < 1 else math.inf
    return {"lambda": scale, "sigma": sigma, "kappa": kappa, "peak": max(1.0, peak), "error_percent": 100 * math.sqrt(wrong / len(xs))}


def said(law: dict[str, float]) -> str:
    """The law in words."""
    if not law:
        return ""
    text = f"contention {100 * law['sigma']:.1f} %, coherency {100 * law['kappa']:.3f} %, error {law['error_percent']:.1f} %"
    if math.isinf(law["peak"]):
        return text + "; no peak: throughput approaches a limit, because sessions queue for what is serial"
    cause = "sessions wait for each other's changes" if law["kappa"] > law["sigma"] / 50 else "sessions queue for what is serial"
    return f"{text}; peak at {law['peak']:.0f} sessions, because {cause}"


def of_records(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The model of an output directory: phases, formulas, predictions beside counted gets, laws."""
    found: dict[str, Any] = {}
    cases = next(
        (
            r["metrics"]
            for r in records
            if r["run"] == MODEL[0]
            and (r["point"].get("mode"), r["point"].get("store")) == ("broadcast", "table")
            and "case1_latch" in r["metrics"]
        ),
        None,
    )
    loops = [r for r in records if r["run"] == MODEL[1] and "own_waits" in r["metrics"] and r["point"].get("method") == "listen"]
    if cases:
        fitted = phases(cases)
        found["phases"] = fitted
        found["formulas"] = {
            kind: {"ours": formula(fitted[kind]), "printed": THEIRS.get(kind, ("", ""))[0], "right": THEIRS.get(kind, ("", ""))[1]}
            for kind in KINDS
        }
        found["predictions"] = [
            _prediction(fitted, r)
            for r in sorted(loops, key=lambda r: (r["point"].get("sessions", 0), r["repeat"]))
            if r["metrics"].get("own")
        ]
    for method in ("listen", "subscriber"):
        curve: dict[float, list[float]] = {}
        for r in records:
            if (
                r["workload"] == "queue_loop"
                and r["run"] == "px"
                and r["point"].get("method") == method
                and r["metrics"].get("total_per_s")
            ):
                curve.setdefault(float(r["point"]["sessions"]), []).append(r["metrics"]["total_per_s"])
        law = scalability({x: sum(ys) / len(ys) for x, ys in curve.items()})
        if law:
            found.setdefault("laws", {})[method] = {**{k: (v if math.isfinite(v) else None) for k, v in law.items()}, "said": said(law)}
    return found


def _prediction(fitted: dict[str, dict[str, float]], record: dict[str, Any]) -> dict[str, Any]:
    """Counted and predicted operations per message of the traced session."""
    m = record["metrics"]
    own = m["own"]
    waits = m["own_waits"] / own
    row: dict[str, Any] = {"sessions": record["point"]["sessions"], "repeat": record["repeat"], "waits": waits}
    for kind in KINDS:
        counted = m.get(f"own_{kind}")
        if counted is not None:
            expected = fitted[kind]["Q"] + min(1.0, waits) * (fitted[kind]["S"] + fitted[kind]["U"]) + waits * fitted[kind]["W"]
            row[kind] = {"counted": counted / own, "predicted": expected}
    return row
