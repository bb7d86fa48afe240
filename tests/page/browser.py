"""A headless Chromium that shows the chat page.

In: a URL. Out: the page's elements, the addresses that it asked for, and the lines in its console.
"""
import json
import os
import shutil
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

LONGEST = 60  # seconds that any step may take


class Browser:
    def __init__(self, url):
        self.url = url.rstrip("/")
        self.downloads = tempfile.mkdtemp(prefix="forerun-page-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update"):
            options.add_argument(word)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        options.add_experimental_option("prefs", {"download.default_directory": self.downloads})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(LONGEST)
        self.size(1400, 900)
        self.asked, self.said = [], []
        self.open()

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.downloads)

    def open(self):
        self.driver.get(self.url + "/")

    def reload(self):
        self.driver.refresh()

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def shade(self, dark):
        value = "dark" if dark else "light"
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": value}]})

    # ------------------------------------------------------------------------------------------------------ the page

    def run(self, script, *values):
        return self.driver.execute_script(script, *values)

    def module(self, script, *values):
        """Returns the result of an async function that is called with `values`."""
        return self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1], values = [...arguments].slice(0, -1);"
            f"(async (values) => {{ {script} }})(values).then(done, (error) => done({{failed: String(error)}}));",
            *values)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def seen(self, selector):
        """Returns true if the element is shown. An element in a folded block is not."""
        return self.run("return document.querySelector(arguments[0]).checkVisibility()", selector)

    def until(self, true, what):
        end = time.monotonic() + LONGEST
        while not true():
            assert time.monotonic() < end, f"waited in vain: {what}"
            time.sleep(0.02)

    def press(self, *keys, where="#input"):
        self.one(where).send_keys(*keys)

    def alt(self, key):
        self.driver.switch_to.active_element.send_keys(Keys.ALT, key)

    def say(self, text):
        """Sends a message, and waits until its answer ends."""
        self.press(text, Keys.ENTER)
        self.ended()

    def ended(self):
        self.until(lambda: self.run("return document.querySelectorAll('.assistant').length > 0 && "
                                    "!document.querySelector('[aria-busy=true]')"), "the end of an answer")
        time.sleep(0.1)  # the browser is still storing it

    def kept(self):
        """Returns all conversations that the browser has stored."""
        return self.module("const store = await import('/page/store.js'); return store.allConversations();")

    # ------------------------------------------------------------------------------------- requests and the console

    def listen(self):
        """Returns the addresses that were asked for and the console's lines, both since the page was opened."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                params = message["params"]
                self.asked.append(params["request"]["url"] if "request" in params else params["url"])
        self.said += [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return self.asked, self.said
