"""Opens a page in headless Chromium, as a reader would, and says what was seen."""
import html
import json
import os
import re
import shutil
import subprocess
import tempfile

CHROMIUM = shutil.which("chromium")
# Appended to a copy of a page: what the browser made of it.
PROBE = """<script>
window.addEventListener("load", () => {
  const pixels = image => {
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return Array.from(context.getImageData(0, 0, canvas.width, canvas.height).data);
  };
  const style = (selector, name) => {
    const found = document.querySelector(selector);
    return found && getComputedStyle(found)[name];
  };
  const found = {
    injected: window.injected || null, title: document.title, errors: window.seenErrors,
    scripts: document.scripts.length,
    external: performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !name.startsWith("data:")),
    images: Array.from(document.querySelectorAll("figure img"), image => ({
      id: image.closest("figure").id, width: image.naturalWidth, height: image.naturalHeight,
      caption: image.closest("figure").querySelector("figcaption").innerText,
      title: image.closest("figure").querySelector("figcaption").title, pixels: PIXELS ? pixels(image) : []})),
    background: style("body", "backgroundColor"), color: style("body", "color"),
    chart: style("svg.chart text", "fill"),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    height: document.documentElement.scrollHeight,
    cut: Array.from(document.querySelectorAll("body *:not(svg *)")).filter(element => {
      const box = element.getBoundingClientRect();
      return box.width && box.right > document.documentElement.clientWidth + 1; }).map(element => element.outerHTML.slice(0, 80)),
    visible: Array.from(document.querySelectorAll("#sheet .block[id]")).filter(block => block.clientHeight).map(block => block.id),
    enlarged: (() => { const figure = document.querySelector("figure:target");
                       return figure && [getComputedStyle(figure).position, figure.querySelector("img").clientHeight]; })()};
  const text = document.createElement("pre");
  text.id = "probe";
  text.textContent = JSON.stringify(found);
  document.body.replaceChildren(text);
  parent.postMessage(text.textContent, "*");
});
</script>"""
# A page of any width; windows of Chromium are at least 500 pixels wide.
FRAME = """<!DOCTYPE html><pre id="probe"></pre><script>
window.addEventListener("message", event => { document.getElementById("probe").textContent = event.data; });
</script><iframe src="PAGE" style="border: 0; width: WIDTHpx; height: 900px"></iframe>"""
ERRORS = """<script>
window.seenErrors = [];
window.addEventListener("error", event => seenErrors.push(String(event.message)), true);
</script>"""


def chromium(page, *arguments, fragment=""):
    """Runs Chromium on a page; returns its standard output and what it logged."""
    with tempfile.TemporaryDirectory() as profile:
        run = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--force-color-profile=srgb", f"--user-data-dir={profile}", *arguments, f"file://{page}{fragment}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180, env={**os.environ, "HOME": profile})
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    return run.stdout.decode(), run.stderr.decode(errors="replace")


def console_lines(page):
    """What the page as it is wrote to the console: errors, warnings and violations of its policy."""
    _, log = chromium(page, "--enable-logging=stderr", "--v=0", "--dump-dom")
    return [line for line in log.splitlines() if "CONSOLE" in line]


def look(page, pixels=False, dark=False, fragment="", width=1000):
    """What Chromium shows of a copy of the page that has lost its policy, so that a script would run if there were one."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    text, policies = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert policies == 1
    probe = PROBE.replace("PIXELS", "true" if pixels else "false")
    copy = f"{page}.probe.html"
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text.replace("<head>", f"<head>{ERRORS}", 1).replace("</body>", f"{probe}</body>", 1))
    if width < 500:
        with open(f"{page}.frame.html", "w", encoding="utf-8") as file:
            file.write(FRAME.replace("PAGE", os.path.basename(copy)).replace("WIDTH", str(width)))
        copy = f"{page}.frame.html"
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    dom, _ = chromium(copy, f"--window-size={width},900", *scheme, "--virtual-time-budget=5000", "--dump-dom", fragment=fragment)
    return json.loads(html.unescape(re.search(r'<pre id="probe">(.*)</pre>', dom, re.DOTALL).group(1)))
