"""A plugin of pytest for llama.cpp's server tests: nothing is downloaded or started before a test needs it."""
import utils

utils.ServerPreset.load_all = staticmethod(lambda: None)


def download_file(url, output_file_path=None):
    import pytest

    pytest.skip(f"nothing is downloaded: {url}")


utils.download_file = download_file
