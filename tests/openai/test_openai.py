# Copyright The treecore Authors
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's own client against treecore serve. Usage: test_openai.py URL/v1"""

import sys
import unittest

import openai

MODEL = "hybrid-3way"
KEY = "secret"
URL = ""
LONG = "A system prompt that all requests share, long enough for some pages. " * 8


class Client(unittest.TestCase):
    def setUp(self):
        self.client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)

    def tearDown(self):
        self.client.close()

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).owned_by, "treecore")

    def test_completion(self):
        cold = self.client.completions.create(model=MODEL, prompt="cold " + LONG, max_tokens=8, seed=1)
        warm = self.client.completions.create(model=MODEL, prompt="cold " + LONG, max_tokens=8, seed=1)
        self.assertEqual(cold.choices[0].text, warm.choices[0].text)
        self.assertEqual(cold.choices[0].finish_reason, "length")
        self.assertEqual(cold.usage.prompt_tokens_details.cached_tokens, 0)
        self.assertGreater(warm.usage.prompt_tokens_details.cached_tokens, 256)
        self.assertEqual(warm.usage.total_tokens, warm.usage.prompt_tokens + 8)

    def test_completion_stream(self):
        ask = dict(model=MODEL, prompt="stream " + LONG, max_tokens=50, seed=2, extra_body={"ignore_eos": True})
        whole = self.client.completions.create(**ask)
        chunks = list(self.client.completions.create(stream=True, stream_options={"include_usage": True}, **ask))
        self.assertEqual("".join(c.choices[0].text for c in chunks[:-1]), whole.choices[0].text)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual(chunks[-1].usage.completion_tokens, 50)
        self.assertGreater(chunks[-1].usage.prompt_tokens_details.cached_tokens, 256)

    def test_several(self):
        c = self.client.completions.create(model=MODEL, prompt=["one", "two"], n=2, max_tokens=4)
        self.assertEqual([x.index for x in c.choices], [0, 1, 2, 3])

    def test_chat(self):
        messages = [{"role": "system", "content": LONG}, {"role": "user", "content": "First question?"}]
        first = self.client.chat.completions.create(model=MODEL, messages=messages, max_completion_tokens=8)
        self.assertEqual(first.choices[0].message.role, "assistant")
        messages += [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And then?"}]
        second = self.client.chat.completions.create(model=MODEL, messages=messages, max_completion_tokens=8)
        self.assertGreater(second.usage.prompt_tokens_details.cached_tokens, 256)

    def test_chat_stream(self):
        ask = dict(model=MODEL, messages=[{"role": "user", "content": "Stream!"}], max_tokens=40, extra_body={"ignore_eos": True})
        whole = self.client.chat.completions.create(**ask)
        chunks = list(self.client.chat.completions.create(stream=True, **ask))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks), whole.choices[0].message.content)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")

    def test_log_probabilities(self):
        c = self.client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x"}], max_tokens=3, logprobs=True, extra_body={"ignore_eos": True})
        self.assertEqual(len(c.choices[0].logprobs.content), 3)
        self.assertLess(c.choices[0].logprobs.content[0].logprob, 0)

    def test_salt_keeps_apart(self):
        for salt in ("a", "b"):
            c = self.client.completions.create(model=MODEL, prompt="salt " + LONG, max_tokens=1, extra_body={"cache_salt": salt})
            self.assertEqual(c.usage.prompt_tokens_details.cached_tokens, 0)

    def test_leaving_a_stream(self):
        stream = self.client.completions.create(model=MODEL, prompt="leave", max_tokens=100000, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.test_several()

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError) as e:
            self.client.completions.create(model="other", prompt="x")
        self.assertEqual(e.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as e:
            self.client.completions.create(model=MODEL, prompt="x", top_p=0.5)
        self.assertEqual(e.exception.param, "top_p")
        with self.assertRaises(openai.BadRequestError) as e:
            self.client.completions.create(model=MODEL, prompt="x" * 300000)
        self.assertEqual(e.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.AuthenticationError) as e:
            openai.OpenAI(base_url=URL, api_key="wrong", max_retries=0).models.list()
        self.assertEqual(e.exception.code, "invalid_api_key")


if __name__ == "__main__":
    URL = sys.argv.pop()
    unittest.main()
