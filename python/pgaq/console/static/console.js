// Keys, and the pause of live pages.  Everything else is HTML that the server draws.
"use strict";
(() => {
	let paused = false, before = "", kept = null;
	const live = () => document.getElementById("live");
	const name = element => [element.tagName, element.id || element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent].join(" ");
	const typing = () => /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);

	function pause() {
		const button = document.getElementById("pause");
		if (!button) return;
		paused = !paused;
		button.textContent = paused ? "Continue" : "Pause";
	}

	document.addEventListener("htmx:sseBeforeMessage", event => {
		if (paused || String(document.getSelection()) !== "") return event.preventDefault();
		const focused = document.activeElement;
		kept = {
			focus: live().contains(focused) ? name(focused) : null,
			scrolled: new Map([...live().querySelectorAll(".scroll")].map(each => [name(each), each.scrollLeft])),
		};
	});
	// what is new has the focus and the scroll positions of what it replaces
	document.addEventListener("htmx:sseMessage", () => {
		for (const each of live().querySelectorAll(".scroll")) each.scrollLeft = kept?.scrolled.get(name(each)) ?? 0;
		if (kept?.focus && !live().contains(document.activeElement))
			[...live().querySelectorAll("a, button, input, select, summary, [tabindex]")].find(each => name(each) === kept.focus)?.focus({ preventScroll: true });
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
