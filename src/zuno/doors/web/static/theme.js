// Set the theme before the first paint: "light", "dark", or neither for what the system says.
(() => {
  try {
    const chosen = localStorage.getItem("zuno-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch { /* storage is forbidden: the system decides */ }
})();
