"""The pictures of docs/console.md, from a running ./demo console, by the system's Chromium.

tools/python tools/console_pictures.py http://127.0.0.1:8410 PASSWORD
"""

import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "img"
# page, name, dark, width
PICTURES = (("queues", "console-overview", False, 1280), ("waits", "console-waits", True, 1280), ("dead", "console-dead", False, 1280))
HEIGHT, LIVE = 760, 20  # seconds until the curves have something to show


def main(url: str, password: str) -> None:
    options = Options()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    try:
        browser.get(f"{url}/login")
        browser.find_element(By.NAME, "role").send_keys("postgres")
        browser.find_element(By.NAME, "password").send_keys(password)
        browser.find_element(By.CSS_SELECTOR, "form.login button").click()
        time.sleep(LIVE)
        for page, name, dark, width in PICTURES:
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            browser.set_window_size(width, HEIGHT)
            browser.get(f"{url}/{page}")
            time.sleep(3)
            browser.save_screenshot(str(FOLDER / f"{name}.png"))
        complaints = [each for each in browser.get_log("browser") if each["level"] == "SEVERE"]
        if complaints:
            sys.exit(f"the browser complains: {complaints}")
    finally:
        browser.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
