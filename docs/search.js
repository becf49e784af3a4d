/* The search of the site. tools/site.py writes search_index.js: [title, heading, address, text] of each part of each page. It is a
 * script and not data, because a browser lets a page from a file load scripts, but no data. */
(function () {
  const base = document.currentScript.src.replace(/search\.js.*$/, "");
  const most = 12, around = 60;
  const box = document.createElement("div"), input = document.createElement("input"), list = document.createElement("div");
  let loading = false;

  function plain(text) {
    return text.replace(/[&<>]/g, sign => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);
  }

  function mark(text, words) {
    const found = new RegExp("(" + words.map(w => plain(w).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "gi");
    return plain(text).replace(found, "<mark>$1</mark>");
  }

  /* Every word must occur; in a title or heading it counts more. */
  function rank(part, words) {
    const title = part[0].toLowerCase(), heading = part[1].toLowerCase(), text = part[3].toLowerCase();
    let sum = 0;
    for (const word of words) {
      const times = Math.min(text.split(word).length - 1, 5);
      const score = times + (heading.includes(word) ? 10 : 0) + (title.includes(word) ? 8 : 0) + (heading === word || title.startsWith(word + "(") ? 20 : 0);
      if (!score)
        return 0;
      sum += score;
    }
    return sum;
  }

  function excerpt(text, words) {
    const at = Math.max(0, text.toLowerCase().indexOf(words[0]));
    const from = Math.max(0, at - around);
    return (from ? "... " : "") + text.slice(from, at + 2 * around);
  }

  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.hidden = !words.length;
    if (list.hidden || !window.varve_search)
      return;
    const best = window.varve_search.map(part => [rank(part, words), part]).filter(r => r[0]).sort((a, b) => b[0] - a[0]).slice(0, most);
    list.innerHTML = best.length ? "" : "<p>Nothing was found.</p>";
    for (const [, part] of best) {
      const link = document.createElement("a");
      link.href = base + part[2];
      link.innerHTML = "<b>" + mark(part[1] === part[0] ? part[0] : part[0] + ": " + part[1], words) + "</b> " + mark(excerpt(part[3], words), words);
      list.append(link);
    }
  }

  function load() {
    if (loading)
      return;
    loading = true;
    const script = document.createElement("script");
    script.src = base + "search_index.js";
    script.onload = show;
    document.head.append(script);
  }

  function start() {
    box.className = "site-search";
    input.type = "search";
    input.placeholder = "Search";
    input.setAttribute("aria-label", "Search");
    list.hidden = true;
    box.append(input, list);
    document.querySelector(".md-header__inner").append(box);
    input.addEventListener("focus", load);
    input.addEventListener("input", () => { load(); show(); });
    document.addEventListener("keydown", event => {
      const here = box.contains(document.activeElement);
      if (event.key === "/" && !here) {
        event.preventDefault();
        input.focus();
      } else if (event.key === "Escape" && here) {
        list.hidden = true;
        input.blur();
      } else if (event.key === "Enter" && document.activeElement === input && list.querySelector("a")) {
        list.querySelector("a").click();
      }
    });
    document.addEventListener("click", event => { if (!box.contains(event.target)) list.hidden = true; });
  }

  if (document.readyState === "loading")
    document.addEventListener("DOMContentLoaded", start);
  else
    start();
})();
