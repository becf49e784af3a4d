// Elements. Text goes in as text only: names come from a store and may hold anything.
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const e = document.createElement(name || "div");
  if (classes.length) e.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
