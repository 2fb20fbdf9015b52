from torch import nn

from gtx.training.module import PretrainedWeightLoader


def test_what_fits_is_taken_over_and_said() -> None:
    def made(outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, outputs, bias=outputs > 1))

    own, same, trained = made(2), made(2), made(5)
    PretrainedWeightLoader().apply(own, trained)
    assert own[0].weight.equal(trained[0].weight) and own[1].weight.shape == (2, 4)
    states = [model.state_dict() for model in (own, same, trained)]
    assert PretrainedWeightLoader().describe(states[0], states[1]) == "all 4 tensors are kept"
    assert (
        PretrainedWeightLoader().describe(states[0], states[2])
        == "2 of 4 tensors are kept, 2 are new: 1.weight [2, 4], 1.bias [2]"
    )
    assert PretrainedWeightLoader().describe(made(1).state_dict(), states[2]).endswith("1 is new: 1.weight [1, 4]")
