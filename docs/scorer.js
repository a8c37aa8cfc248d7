// How search orders what it finds: first the object with the very name that was asked for, such as a key, a flag or a
// metric, whole or from a dot or a blank on. All other figures are Sphinx's own.
var Scorer = {
  score: ([, title, , , score, , kind]) => {
    const asked = (new URLSearchParams(window.location.search).get("q") ?? "").trim().toLowerCase();
    const named = [".", " "].some((mark) => (mark + title.toLowerCase()).endsWith(mark + asked));
    return kind === "object" && named ? 100 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
