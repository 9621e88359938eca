#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small architectures in MGE and in PyTorch with the same data, and compares the losses and the parameters.

Each architecture is exported by both exporters of PyTorch, by the recipe of sdk/python/README.md and with their defaults. A model of
the recipe must follow PyTorch. One of the defaults must follow it, or MGE must warn. Some trainings multiply rounding errors so much
that PyTorch in float32 does not follow itself in float64; only their first gradients are compared. Needs torch and onnxscript;
architectures of torchvision and transformers need those. Set PYTHONPATH to sdk/python.

Exit codes: 0 all well; 1 a difference; 77 skipped, because a package is missing.
"""
import argparse
import contextlib
import io
import logging
import pathlib
import sys
import tempfile
import time
import warnings

import numpy

try:
    import onnxscript  # noqa: F401
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as missing:
    print(f"skipped: {missing}; install torch and onnxscript")
    sys.exit(77)

import mge

STEPS, RATE, MOMENTUM = 10, 0.01, 0.9
LOSS_ERROR, WEIGHT_ERROR = 1e-3, 1e-2  # relative to the value and to the largest element
GRADIENT_ERROR = 1e-4  # of all gradients of the first step, relative to their norm

FORMS = {  # training mode, follows PyTorch without a warning, arguments of the exporter
    "dynamo": (True, True, {"dynamo": True, "optimize": False}),
    "dynamo_default": (True, False, {"dynamo": True}),
    "script": (True, True, {"dynamo": False, "do_constant_folding": False, "training": torch.onnx.TrainingMode.TRAINING}),
    "script_default": (True, False, {"dynamo": False}),
}


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers, self.head = kind(6, 12, num_layers=2, batch_first=True), nn.Linear(12, 5)

    def forward(self, x):
        return self.head(self.layers(x)[0][:, -1])


class Encoder(nn.Module):
    """A transformer whose layers are copies of one, so that all their parameters are equal before the training."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.embedding, self.head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.layers(self.embedding(x)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.GroupNorm(4, 8), nn.SiLU())
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.first(x)
        return self.head((x + self.second(x)).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def block(channels, outputs):
            return nn.Sequential(nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
        self.down, self.bottom, self.last = block(3, 8), block(8, 16), block(16, 8)
        self.up, self.head = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(8, 5, 1)

    def forward(self, x):
        down = self.down(x)
        up = self.up(self.bottom(functional.max_pool2d(down, 2)))
        return self.head(self.last(torch.cat([down, up], 1))).permute(0, 2, 3, 1)


class Padded(nn.Module):
    """An embedding whose row of padding is not trained by it."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 16, padding_idx=0), nn.Linear(16, 50)
        with torch.no_grad():
            self.embedding.weight[0] = torch.rand(16)

    def forward(self, x):
        return self.head(torch.tanh(self.embedding(x)))


def images(count, side):
    return lambda: torch.rand(count, 3, side, side)


def tokens(classes):
    return lambda: torch.randint(2, classes, (2, 12))  # 0 and 1 may be rows of padding, which files of the older exporter lack


def zoo():
    """Returns rows of a name, a model, inputs and the number of classes. Leaves out rows whose package is missing."""
    rows = [("mlp", lambda: nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 32), nn.LayerNorm(32),
                                          nn.Linear(32, 5)), lambda: torch.rand(8, 20), 5),
            ("residual", Residual, images(8, 8), 5),
            ("lstm", lambda: Recurrent(nn.LSTM), lambda: torch.rand(4, 9, 6), 5),
            ("gru", lambda: Recurrent(nn.GRU), lambda: torch.rand(4, 9, 6), 5),
            ("encoder", Encoder, tokens(50), 50),
            ("unet", UNet, images(4, 16), 5),
            ("padding", Padded, lambda: torch.randint(0, 4, (2, 12)), 50)]
    with contextlib.suppress(ImportError):
        from torchvision import models
        convnext = [models.convnext.CNBlockConfig(16, 32, 1), models.convnext.CNBlockConfig(32, None, 1)]
        rows += [("resnet18", lambda: models.resnet18(num_classes=10), images(8, 32), 10),
                 ("mobilenet_v3", lambda: models.mobilenet_v3_small(num_classes=10, width_mult=0.5), images(8, 64), 10),
                 ("densenet", lambda: models.DenseNet(8, (2, 2), 16, num_classes=10), images(4, 64), 10),
                 ("convnext", lambda: models.ConvNeXt(convnext, num_classes=10), images(4, 32), 10),
                 ("vit", lambda: models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10), images(4, 32), 10),
                 ("swin", lambda: models.SwinTransformer([4, 4], 16, [1, 1], [2, 4], [4, 4], num_classes=10), images(4, 64), 10)]
    with contextlib.suppress(ImportError):
        import transformers
        small = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                     max_position_embeddings=40)
        decoder = dict(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4)

        class Logits(nn.Module):
            def __init__(self, model, **arguments):
                super().__init__()
                self.model, self.arguments = model, arguments

            def forward(self, x):
                return self.model(x, **self.arguments).logits

        t = transformers
        rows += [("bert", lambda: Logits(t.BertForSequenceClassification(t.BertConfig(num_labels=5, **small))), tokens(64), 5),
                 ("gpt2", lambda: Logits(t.GPT2LMHeadModel(t.GPT2Config(**decoder)), use_cache=False), tokens(64), 64),
                 ("llama", lambda: Logits(t.LlamaForCausalLM(t.LlamaConfig(**small)), use_cache=False), tokens(64), 64)]
    return rows


def make(row):
    """Returns a model that drops nothing, its batches and their labels, the same ones each time."""
    _, model, inputs, classes = row
    torch.manual_seed(7)
    net = model()
    for module in net.modules():
        for name in ("p", "dropout", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    batches = [inputs() for _ in range(3)]
    with torch.no_grad():
        shape = net.eval()(batches[0]).shape
    return net, batches, [torch.randint(0, classes, shape[:-1]) for _ in batches]


def train_in_torch(row, dtype):
    """Returns the losses, the parameters and the gradients of the first step."""
    net, batches, labels = make(row)
    net.to(dtype).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM)
    losses, gradients = [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        batch = batches[step % 3]
        result = net(batch.to(dtype) if batch.is_floating_point() else batch)
        loss = functional.cross_entropy(result.flatten(0, -2), labels[step % 3].flatten())
        loss.backward()
        if step == 0:
            gradients = {name: p.grad.double().numpy().copy() for name, p in net.named_parameters() if p.grad is not None}
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: p.detach().numpy() for name, p in net.named_parameters()}, gradients


def export(row, form, path):
    mode, _, arguments = FORMS[form]
    net, batches, _ = make(row)
    net.train(mode)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(net, (batches[0],), path, input_names=["x"], **arguments)


def train_in_mge(row, path):
    """Returns the losses, the parameters, the gradients of the first step and the messages."""
    _, batches, labels = make(row)
    messages = []
    runtime = mge.Runtime(log=lambda level, text: messages.append(text))
    losses, gradients = [], {}
    with mge.Trainer(path, momentum=MOMENTUM, device="cpu0", keep_gradients=True, runtime=runtime) as trainer:
        for i in range(STEPS):
            losses.append(trainer.step(x=batches[i % 3].numpy(), labels=labels[i % 3].numpy(), learning_rate=RATE))
            if i == 0:
                gradients = {name: numpy.array(g, dtype=numpy.float64) for name, g in trainer.gradients.items()}
        weights = {name: numpy.array(trainer.states[name]) for name in trainer.parameters}
    runtime.close()
    return losses, weights, gradients, messages


def loss_error(losses, reference):
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, reference))


def gradient_error(gradients, reference):
    """Returns the error of all gradients that both have, relative to their norm."""
    shared = [n for n in reference if n in gradients and gradients[n].shape == reference[n].shape]
    square = sum(float((reference[n] ** 2).sum()) for n in shared)
    return (sum(float(((gradients[n] - reference[n]) ** 2).sum()) for n in shared) / max(square, 1e-30)) ** 0.5


def compare(row, form, expected, exact, folder):
    """Returns a line of a table and whether all is well. `expected` and `exact`: PyTorch in float32 and in float64."""
    path = str(pathlib.Path(folder) / f"{row[0]}.{form}.onnx")
    try:
        export(row, form, path)
    except Exception as error:  # of any type: the exporters have many
        return f"not exported: {type(error).__name__}", True
    try:
        losses, weights, gradients, messages = train_in_mge(row, path)
    except mge.Error as error:
        return f"refused: {error}".replace("\n", " "), False
    reference, parameters, first = expected
    loss = loss_error(losses, reference)
    shared = [name for name in weights if name in parameters and weights[name].shape == parameters[name].shape]
    weight = max((float(numpy.abs(weights[n] - parameters[n]).max() / max(numpy.abs(parameters[n]).max(), 1e-2)) for n in shared),
                 default=0)
    gradient, rounding = gradient_error(gradients, exact[2]), gradient_error(first, exact[2])
    is_chaotic = loss_error(reference, exact[0]) > LOSS_ERROR
    follows = gradient < GRADIENT_ERROR and (is_chaotic or (loss < LOSS_ERROR and weight < WEIGHT_ERROR))
    well = follows or (not FORMS[form][1] and bool(messages))
    return (f"loss {loss:.1e}  weights {weight:.1e}  gradients {gradient:.1e} ({rounding:.1e} in PyTorch)  "
            f"parameters {len(shared)}/{len(parameters)}  warnings {len(messages)}"), well


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only architectures with this text in their names")
    parser.add_argument("--form", choices=FORMS, help="only this form of export")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in zoo():
            if arguments.only not in row[0]:
                continue
            expected, exact = train_in_torch(row, torch.float32), train_in_torch(row, torch.float64)
            for form in [arguments.form] if arguments.form else FORMS:
                if row[0] == "padding" and form.startswith("script"):
                    continue
                begin = time.monotonic()
                line, well = compare(row, form, expected, exact, folder)
                failed += not well
                print(f"{'ok  ' if well else 'FAIL'} {row[0]:13} {form:15} {line}  ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
