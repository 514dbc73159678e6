/* Whole pages in frames follow the theme that the site's button chose. Where a browser keeps frames apart, as it does for files
   on a disk, they follow the system. */
(() => {
  "use strict";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => document.body.dataset.theme === "dark" || (document.body.dataset.theme !== "light" && system.matches);
  const tell = (frame) => {
    const page = frame.contentDocument;
    if (page === null || page.URL === "about:blank") return;
    page.documentElement.dataset.theme = dark() ? "dark" : "light";
    const button = page.getElementById("theme");
    if (button !== null) button.textContent = `${dark() ? "light" : "dark"} theme`;
  };
  addEventListener("DOMContentLoaded", () => {
    const frames = [...document.querySelectorAll(".weftwork-page iframe")];
    for (const frame of frames) frame.addEventListener("load", () => tell(frame));
    new MutationObserver(() => frames.forEach(tell)).observe(document.body, { attributeFilter: ["data-theme"] });
    system.addEventListener("change", () => frames.forEach(tell));
  });
})();
