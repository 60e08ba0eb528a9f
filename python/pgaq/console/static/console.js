// Keys, and the pause of live pages.  Everything else is HTML that the server draws.
"use strict";
(() => {
	let paused = false, before = "";
	const typing = () => /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);

	function pause() {
		const button = document.getElementById("pause");
		if (!button) return;
		paused = !paused;
		button.setAttribute("aria-pressed", paused);
		button.textContent = paused ? "Continue" : "Pause";
	}

	document.addEventListener("htmx:sseBeforeMessage", event => {
		if (paused || String(document.getSelection()) !== "") event.preventDefault();
	});
	document.addEventListener("htmx:sseClose", () => location.reload());
	document.addEventListener("click", event => { if (event.target.id === "pause") pause(); });

	document.addEventListener("keydown", event => {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		if (event.key === "Escape") document.activeElement.blur();
		if (typing()) return;
		const rows = [...document.querySelectorAll("a.row")], at = rows.indexOf(document.activeElement);
		const page = before === "g" && document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
		if (page) page.click();
		else if (event.key === "/") { document.getElementById("search")?.focus(); event.preventDefault(); }
		else if (event.key === "j") rows[Math.min(at + 1, rows.length - 1)]?.focus();
		else if (event.key === "k") rows[Math.max(at - 1, 0)]?.focus();
		else if (event.key === "p") pause();
		before = event.key;
	});
})();
