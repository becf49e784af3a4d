// Bundles the page of `varve report`: node build.mjs FOLDER, where npm has put node_modules. Writes FOLDER/page.html, for looking at, and
// FOLDER/page.c, which is linked into the command. Scripts and styles lie in the page itself, and its policy names them by their digests:
// nothing else runs, and nothing is loaded.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? here);
const require = createRequire(join(folder, "package.json"));
const esbuild = require("esbuild");

function bundle(entry) {
  const { outputFiles, warnings } = esbuild.buildSync({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: "utf8",
    format: "iife",
    target: ["chrome100", "firefox100", "safari15"],
    nodePaths: [join(folder, "node_modules")],
    legalComments: "none",
  });
  if (warnings.length) throw new Error(warnings.map((w) => w.text).join("\n"));
  return outputFiles[0].text.trim();
}

const digest = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const license = readFileSync(join(folder, "node_modules", "uplot", "LICENSE"), "utf8").trim();
const script = bundle("main.js");
const style = bundle("style.css");
if (script.includes("</script") || style.includes("</style") || license.includes("--"))
  throw new Error("the bundle would end its own element");

const parts = {
  POLICY: `default-src 'none'; script-src ${digest(script)}; style-src ${digest(style)}; img-src data:; base-uri 'none'; form-action 'none'`,
  LICENSE: license,
  STYLE: style,
  SCRIPT: script,
};
const page = readFileSync(join(here, "src", "page.html"), "utf8").replace(
  /@(POLICY|LICENSE|STYLE|SCRIPT)@/g,
  (_, name) => parts[name],
);
const [before, after, ...more] = page.split("@DATA@");
if (after === undefined || more.length) throw new Error("page.html must have one place for the data");

const bytes = Buffer.from(before + after);
let rows = "";
for (let i = 0; i < bytes.length; i += 32) rows += [...bytes.subarray(i, i + 32)].join(",") + ",\n";
writeFileSync(join(folder, "page.html"), page);
writeFileSync(
  join(folder, "page.c"),
  `// Made by report/build.mjs of the files in report/src.
#include <stddef.h>

extern const unsigned char vv_report_page_text[];
extern const size_t vv_report_page_hole, vv_report_page_len;

const unsigned char vv_report_page_text[] = {
${rows}};
const size_t vv_report_page_hole = ${Buffer.byteLength(before)}, vv_report_page_len = ${bytes.length};
`,
);
