#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures PyTorch on an architecture of `mge zoo`, with inputs on the device.

Prints one JSON object (schema mge.torch/1): the median time of a run in microseconds, for eager execution, for a replayed
CUDA graph and for a compiled model; with --train, that of a training step, eager and compiled. A way that fails has its error
text in place of a time. float16 and bfloat16 are those of autocast, whose parameters stay in float32.
"""
import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn


class ConvNorm(nn.Sequential):
    def __init__(self, channels_in, channels, kernel, stride=1, groups=1, activation=None):
        layers = [nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, groups=groups, bias=False),
                  nn.BatchNorm2d(channels)]
        super().__init__(*layers, *([activation] if activation else []))


class Bottleneck(nn.Module):
    """A block of ResNet-50 (K. He et al., 2015, with the stride in the 3x3 convolution)."""

    def __init__(self, channels_in, width, stride, first):
        super().__init__()
        self.branch = nn.Sequential(ConvNorm(channels_in, width, 1, activation=nn.ReLU()),
                                    ConvNorm(width, width, 3, stride, activation=nn.ReLU()),
                                    ConvNorm(width, 4 * width, 1))
        self.shortcut = ConvNorm(channels_in, 4 * width, 1, stride) if first else nn.Identity()

    def forward(self, x):
        return torch.relu(self.branch(x) + self.shortcut(x))


def classifier(channels):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def resnet50():
    layers = [ConvNorm(3, 64, 7, 2, activation=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            layers.append(Bottleneck(channels, 64 << stage, stride, block == 0))
            channels = 256 << stage
    return nn.Sequential(*layers, classifier(channels))


class InvertedResidual(nn.Module):
    """A block of MobileNetV2 (M. Sandler et al., 2018)."""

    def __init__(self, channels_in, channels, expand, stride):
        super().__init__()
        hidden = channels_in * expand
        layers = [ConvNorm(channels_in, hidden, 1, activation=nn.ReLU6())] if expand != 1 else []
        self.branch = nn.Sequential(*layers, ConvNorm(hidden, hidden, 3, stride, hidden, nn.ReLU6()),
                                    ConvNorm(hidden, channels, 1))
        self.adds = stride == 1 and channels_in == channels

    def forward(self, x):
        return x + self.branch(x) if self.adds else self.branch(x)


def mobilenetv2():
    layers = [ConvNorm(3, 32, 3, 2, activation=nn.ReLU6())]
    channels_in = 32
    for expand, channels, repeat, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                             (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeat):
            layers.append(InvertedResidual(channels_in, channels, expand, stride if i == 0 else 1))
            channels_in = channels
    return nn.Sequential(*layers, ConvNorm(320, 1280, 1, activation=nn.ReLU6()), classifier(1280))


class Bert(nn.Module):
    """The encoder of BERT-base (J. Devlin et al., 2018)."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30522, 768)
        self.positions = nn.Parameter(torch.randn(1, 128, 768))
        self.norm = nn.LayerNorm(768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)

    def forward(self, ids):
        return self.layers(self.norm(self.words(ids) + self.positions))


def image(batch):
    return torch.randn(batch, 3, 224, 224)


MODELS = {
    "resnet50": (resnet50, image),
    "mobilenetv2": (mobilenetv2, image),
    "bert-base": (Bert, lambda batch: torch.randint(0, 30522, (batch, 128))),
}


def median_us(run, wait, seconds):
    for _ in range(5):
        run()
    wait()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        wait()
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def step_of(model, x):
    """Returns a function that makes a training step by the mean of the outputs."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).float().mean().backward()
        optimizer.step()
    return step


def graph_of(model, x):
    """Returns a function that replays the model as a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    return graph.replay


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--device", default="cuda", help="a device of PyTorch: cuda, cuda:1, cpu")
    parser.add_argument("--type", choices=("float32", "tf32", "float16", "bfloat16"), default="float32",
                        help="type of the products")
    parser.add_argument("--train", action="store_true", help="measure a step: forward, gradients, SGD")
    parser.add_argument("--seconds", type=float, default=2, help="time to measure each way of execution")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = args.type == "tf32"
    torch.backends.cudnn.allow_tf32 = args.type == "tf32"
    torch.backends.cudnn.benchmark = True
    on_gpu = args.device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(torch.device(args.device).index or 0)
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    make, make_input = MODELS[args.model]
    ways = {"eager": step_of if args.train else lambda model, x: lambda: model(x)}
    if on_gpu and not args.train:
        ways["graph"] = graph_of
    ways["compiled"] = lambda model, x: ways["eager"](torch.compile(model, mode="max-autotune"), x)
    report = {"schema": "mge.torch/1", "version": torch.__version__, "model": args.model, "batch": args.batch,
              "type": args.type}
    best = None
    half = args.type in ("float16", "bfloat16")
    cast = torch.autocast(args.device.split(":")[0], getattr(torch, args.type)) if half else contextlib.nullcontext()
    with contextlib.nullcontext() if args.train else torch.inference_mode(), cast:
        model, x = make().train(args.train).to(args.device), make_input(args.batch).to(args.device)
        for name, way in ways.items():
            try:
                report[f"{name}_us"] = median_us(way(model, x), wait, args.seconds)
                best = min(best or float("inf"), report[f"{name}_us"])
            except Exception as error:  # each way has needs of its own, such as a compiler; the report shows the reason
                report[f"{name}_error"] = str(error).strip().split("\n")[0]
    report["best_us"] = best
    print(json.dumps(report))
    return 0 if best is not None else 1


if __name__ == "__main__":
    sys.exit(main())
